package CdcBridge::Mix;

# Random transactions of every kind that a log can hold, all at once: those of the shop, savepoints and rolling back to them, XA in one
# phase and in two, prepared ones that are left for others to end, rows without a key.
#
#   my $mix = CdcBridge::Mix->new(rows => 500, hot => 20);
#   my $source = CdcBridge::Source->new(args => [ CdcBridge::Mix::server_args() ]);    # compressed logs in small files
#   $mix->create($source);
#   $source->start_writers(3, sub { $mix->change($source, @_); });
#   $mix->end_prepared($source);
#
# The servers' own replication must not wait for what is prepared and ended much later, so gaps are not locked and rows without a key are
# deleted only from a table into which nobody inserts in XA.

use strict;
use warnings;

use CdcBridge::Env qw(new_folder poll_until slurp);
use CdcBridge::Shop qw(change_hot change_shop create_hot create_shop fill_shop);

my $most_left = 6;    # prepared transactions that are left at a time

sub server_args
{
	my $mysql = ($ENV{CDC_SOURCE} // 'mariadb') eq 'mysql';
	# a source that is killed and whose log is to be believed flushes it at each commit
	return ('--sync-binlog=1', '--max-binlog-size=65536', '--transaction-isolation=READ-COMMITTED', '--innodb-lock-wait-timeout=2',
		$mysql ? '--binlog-transaction-compression=ON' : ('--log-bin-compress=ON', '--log-bin-compress-min-len=10'));
}

sub new
{
	my ($class, %option) = @_;
	return bless { left => 1, folder => new_folder('mix'), %option }, $class;
}

sub create
{
	my ($self, $source) = @_;
	create_shop($source);
	fill_shop($source, $self->{rows});
	create_hot($source, $self->{hot});
	# on MySQL a table without a key is locked for a moment, and prepared transactions are listed for who may end them
	$source->sql('create table shop.log (who int, what int)', 'create table shop.xa_log (who int, what varchar(40))', "grant lock tables on shop.* to 'repl'\@'%'",
		'create database elsewhere', 'create table elsewhere.noise (n int)' . ($source->is_mariadb ? ' engine = MyISAM' : ''));
	$source->sql("grant xa_recover_admin on *.* to 'repl'\@'%'") if $source->is_mysql;
	return $self;
}

sub pick { return $_[ rand @_ ]; }

# One random transaction. An error that no kill explains is kept.
sub change
{
	my ($self, $source, $dbh, $number) = @_;
	return if eval { $self->_change($source, $dbh, $number); 1 };
	my $error = $@;
	if ($error !~ /(gone away|Lost connection|Can't connect|shutdown|AutoCommit failed|deadlock|lock wait)/i)
	{
		open(my $out, '>>', "$self->{folder}/errors") or die "$self->{folder}: $!\n";
		print $out $error;
	}
	die $error;
}

# What went wrong with the writers, all of them.
sub errors
{
	my ($self) = @_;
	return -e "$self->{folder}/errors" ? slurp("$self->{folder}/errors") : '';
}

# What of all that the server's log holds: what => how often. Not everything is logged by both families.
sub seen_in_log
{
	my ($self, $source) = @_;
	my %what = $source->is_mysql ? ('compressed transactions' => qr/^Transaction_payload/, 'XA in two phases' => qr/^XA_prepare/)
	  : ('compressed rows' => qr/^\w+_rows_compressed/, 'compressed statements' => qr/^Query_compressed/, 'ROLLBACK TO' => qr/ROLLBACK TO/, 'XA in two phases' => qr/^XA_prepare/);
	$what{rotations} = qr/^Rotate/;
	my %count = map { $_ => 0 } keys %what;
	for my $file ($source->query_rows('show binary logs'))
	{
		for my $event ($source->query_rows("show binlog events in '$file->[0]'"))
		{
			my $text = "$event->[2] " . ($event->[5] // '');
			$count{$_} += $text =~ $what{$_} for keys %what;
		}
	}
	return %count;
}

# All that the logs of SOURCES have of the XA transaction of that name.
sub trace
{
	my ($xid, @sources) = @_;
	my ($first) = $xid =~ /^(X'[^']*')/i;
	my $text = '';
	for my $source (@sources)
	{
		for my $file ($source->query_rows('show binary logs'))
		{
			for my $event ($source->query_rows("show binlog events in '$file->[0]'"))
			{
				$text .= join(' ', $source->port, @$event) . "\n" if ($event->[5] // '') =~ /\Q$first\E/i;
			}
		}
		$text .= join(' ', $source->port, 'prepared:', _prepared($source->dbh)) . "\n";
	}
	return $text;
}

sub _change
{
	my ($self, $source, $dbh, $number) = @_;
	my $dice = rand();
	return change_shop($dbh, $self->{rows}) if $dice < 0.3;
	return change_hot($dbh, $self->{hot}) if $dice < 0.5;
	return $self->_change_log($dbh, $number) if $dice < 0.6;
	return $self->_change_savepoints($source, $dbh, $number) if $dice < 0.75;
	return $self->_change_xa($source, $number) if $dice < 0.95;
	return $self->_end_one($dbh);
}

sub _change_log
{
	my ($self, $dbh, $number) = @_;
	$dbh->do("insert into shop.log values ($number, 1 + floor(rand() * 10))");
	_try($dbh, 'delete from shop.log where what = 3 limit 1') if rand() < 0.4;
	return;
}

# Statements that a transaction of any kind may hold.
sub _statements
{
	my ($self, $number, $count) = @_;
	my $unique = sprintf('%d-%d-%d', $$, time(), rand(1e9));
	return map {
		my $key = 1 + int(rand($self->{hot}));
		my $own = 1_000_000 * $number + int(rand(200));
		my $order = 1 + int(rand($self->{rows}));
		pick("insert into shop.xa_log values ($number, '$unique $_')", "replace into shop.hot_int values ($own, $order, 'xa')", "replace into shop.hot_int values ($own, $order, repeat('é', 50))",
			"delete from shop.hot_int where id = $own", "update shop.hot_int set n = n + 1 where id = $own", "replace into shop.hot_text values ('xa$own', $order)", "delete from shop.hot_text where k = 'xa$own'",
			"replace into shop.hot_pair values ($number, 'z', $order)", "replace into shop.hot_int values ($key, $order, 'xa')", "update shop.orders set note = '$unique' where id = $order",
			"update shop.orders set id = id + 2000003 where id = $order", "delete from shop.orders where id = $order + 2000003",
			"insert into shop.customer (email, name, settings, created_at) values ('$unique-$_\@xa.example', 'XA', '{\"x\": [$order]}', now(3))");
	} 1 .. $count;
}

# Savepoints, some of which are rolled back to; MariaDB leaves what was undone in the log when an engine without transactions was written to.
sub _change_savepoints
{
	my ($self, $source, $dbh, $number) = @_;
	my @statements = map { ($_, rand() < 0.6 ? 'savepoint ' . pick(qw(a b c)) : ()) } $self->_statements($number, 2 + int(rand(6)));
	my %known;
	my @all = map {
		$known{$1} = 1 if /^savepoint (.)/;
		# what a name that is rolled back to has behind it is forgotten: so at most one of them
		($_, rand() < 0.3 && %known ? do { my ($name) = pick(sort keys %known); %known = ($name => 1); "rollback to $name" } : (),
			$source->is_mariadb && rand() < 0.2 ? "insert into elsewhere.noise values ($number)" : ());
	} @statements;
	_try($dbh, 'begin', @all, rand() < 0.1 ? 'rollback' : 'commit');
	return;
}

# An XA transaction on a connection of its own.
sub _change_xa
{
	my ($self, $source, $number) = @_;
	my $dbh = $source->connect;
	my $xid = sprintf("'%d-%d-%d', '%s', %d", $$, time(), rand(1e9), pick('', "q''", 'branch'), 1 + rand(5));
	my @statements = $self->_statements($number, 1 + int(rand(8)));
	splice(@statements, rand(@statements), 0, 'savepoint x', $self->_statements($number, 1), 'rollback to x') if rand() < 0.2;
	my $how = rand();
	my $left = $how >= 0.8 && $self->{left} && _prepared($dbh) < $most_left;
	my $prepared = _try($dbh, "xa start $xid", @statements, "xa end $xid", $how < 0.3 ? "xa commit $xid one phase" : $how < 0.35 ? "xa rollback $xid" : ())
	  && $how >= 0.35 && !$self->_is_held && _try($dbh, "xa prepare $xid");
	_end($dbh, $xid) if $prepared && !$left && !$self->_is_held;
	$dbh->disconnect;    # what is prepared stays
	return;
}

# Collisions with others are no matter: the whole transaction is undone. True when it was not.
sub _try
{
	my ($dbh, @statements) = @_;
	return 1 if eval { $dbh->do($_) for @statements; 1 };
	my $error = $@;
	eval { $dbh->do('rollback') };
	die $error unless $error =~ /(deadlock|duplicate|lock wait|record has changed|XAER_RMFAIL|XA_RB)/i;
	return 0;
}

# Names of what is prepared, as XA COMMIT wants them.
sub _prepared
{
	my ($dbh) = @_;
	return map {
		my ($format, $length, $rest, $data) = @$_;
		sprintf("x'%s', x'%s', %d", unpack('H*', substr($data, 0, $length)), unpack('H*', substr($data, $length, $rest)), $format);
	} @{ $dbh->selectall_arrayref('xa recover') };
}

# End one that was left, or is just being ended by its own session.
sub _end_one
{
	my ($self, $dbh) = @_;
	my @xids = _prepared($dbh);
	_end($dbh, pick(@xids)) if @xids && !$self->_is_held;
	return;
}

sub _end
{
	my ($dbh, $xid) = @_;
	return 1 if eval { $dbh->do((rand() < 0.3 ? 'xa rollback ' : 'xa commit ') . $xid); 1 };
	die $@ unless $@ =~ /XAER_(NOTA|RMFAIL|OUTSIDE)|XA_RB|lock wait|deadlock/i;
	return 0;
}

# From now on no transaction is prepared, and no prepared one ends, and none is about to.
sub hold_xa
{
	my ($self, $source) = @_;
	open(my $file, '>', "$self->{folder}/held") or die "$self->{folder}: $!\n";
	my $quiet = 0;
	poll_until(sub {
		my $busy = $source->query_value(q{select count(*) from information_schema.processlist where info like 'xa %'});
		$quiet = $busy ? 0 : $quiet + 1;
		return $quiet == 3;
	}, 30) or die "XA transactions go on\n";
	return $self;
}

sub let_xa
{
	my ($self) = @_;
	unlink("$self->{folder}/held");
	return $self;
}

sub _is_held { return -e "$_[0]{folder}/held"; }

# End all that are left. Nobody prepares any meanwhile.
sub end_prepared
{
	my ($self, $source) = @_;
	poll_until(sub {
		my @xids = _prepared($source->dbh);
		_end($source->dbh, $_) for @xids;
		return !@xids;
	}, 30) or die "prepared transactions do not end\n";
	return $self;
}

1;
