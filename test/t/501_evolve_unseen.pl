# The shape of a table changes and no statement in the log says so (D25), or the definition that is known is another one than the
# stream's (D26): rows are never read by the wrong definition, and the target ends equal to the source.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
my @tables = qw(added dropped renamed wider shifted twice midway keyless other);
$source->sql('create database shop', map { ("create table shop.$_ (" . ($_ eq 'keyless' ? 'id int' : 'id int primary key') . ', a int, b int, c varchar(20))', "insert into shop.$_ values (1, 1, 10, 'one'), (2, 2, 20, 'two')") } @tables);
$source->sql("grant lock tables on *.* to '" . $source->user . "'\@'%'");    # for the one without a key
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup->start->wait_for_state('streaming')->wait_for_tables;
$pipeline->wait_for_catchup;
my $copies = sub { my ($table) = @_; return scalar(() = $postgres->log_text =~ /"shop\.$table" of pipeline "shop_in" is copied anew because/g); };

sub hidden
{
	my (@statements) = @_;
	my $dbh = $source->connect;
	$dbh->do('set sql_log_bin = 0');
	$dbh->do($_) for @statements;
	$dbh->disconnect;
	return;
}
sub equal
{
	my ($name, @tables) = @_;
	$pipeline->wait_for_catchup->wait_for_tables->wait_for_state('streaming')->wait_for_tables;
	is($postgres->psql(q{select string_agg(concat_ws(' ', source_table, last_error, last_error_detail), ' ') from pg_stat_cdc_table where state <> 'streaming'}), '', "$name: every table streams") or diag($pipeline->describe);
	return $pipeline->is_same("$name: as the source", @tables);
}

# rows of before have the default of then, and the source tells the one of now
hidden('alter table shop.added add d int not null default 5', 'alter table shop.added alter d set default 9');
$source->sql(q{insert into shop.added values (3, 3, 30, 'three', 6)}, 'update shop.added set a = 7 where id = 1');
equal('D25: a column came', 'added');
is($copies->('added'), 1, 'D25: which default its rows have only a new copy tells');
is($postgres->psql(q{select kinds, result, statement is null from cdc_schema_history where source_table = 'added'}), '{add_column}|applied|t', 'D25: the history says that rows showed it');

hidden('alter table shop.dropped drop b');
$source->sql(q{insert into shop.dropped values (3, 3, 'three')});
equal('D25: a column went', 'dropped');

hidden('alter table shop.renamed change b bb int');
$source->sql(q{insert into shop.renamed values (3, 3, 30, 'three')});
equal('D25: a column may have got another name', 'renamed');
is($copies->('renamed'), 1, 'D25: which only a new copy tells');

hidden('alter table shop.wider modify a bigint, modify c varchar(200)');
$source->sql(q{insert into shop.wider values (3, 99999999999, 30, repeat('x', 200))});
equal('D25: wider types', 'wider');

# the same number of columns, at other places
hidden('alter table shop.shifted modify b int first');
$source->sql(q{insert into shop.shifted (id, a, b, c) values (3, 3, 30, 'three')}, 'update shop.shifted set a = 9 where id = 2');
equal('D26: columns at other places', 'shifted');
is($copies->('shifted'), 0, 'D26: names tell them');

# in the middle of a source transaction, after changes of another table
hidden('alter table shop.midway add d int default 4');
$source->sql('begin', q{insert into shop.other values (3, 3, 30, 'three')}, q{insert into shop.midway values (3, 3, 30, 'three', 5)}, q{insert into shop.other values (4, 4, 40, 'four')}, 'commit');
equal('D25: in the middle of a transaction', 'midway', 'other');

# changes of whole transactions before it, which wait in batches, are not lost
$pipeline->stop;
$source->sql('update shop.other set a = a + 100', q{insert into shop.other values (20, 20, 200, 'twenty')});
hidden('alter table shop.midway add e int default 6');
$source->sql(q{insert into shop.midway values (4, 4, 40, 'four', 5, 7)}, 'update shop.other set b = 7 where id = 20');
$pipeline->start;
equal('D25: behind changes that are not written yet', 'midway', 'other');

# shapes that come and go while the stream is behind
$pipeline->stop;
hidden('alter table shop.twice add d int not null default 1');
$source->sql(q{insert into shop.twice values (3, 3, 30, 'three', 3)});
hidden('alter table shop.twice drop b, add e int default 8');
$source->sql(q{insert into shop.twice values (4, 4, 'four', 4, 4)}, 'alter table shop.twice add f int default 9', q{insert into shop.twice values (5, 5, 'five', 5, 5, 5)});
$pipeline->start;
equal('D26: the definition that the source has now is not that of the rows', 'twice');

hidden('alter table shop.keyless add d int not null default 5');
$source->sql(q{insert into shop.keyless values (3, 3, 30, 'three', 6)}, 'update shop.keyless set a = 7 where id = 1');
$pipeline->wait_for_table_state('keyless', 'stopped');
like($pipeline->table_status('keyless', 'last_error_detail'), qr/^What rows have in column "d" is known at the source only, and a table without a key cannot be copied anew/, 'D25: a table without a key stops');

# D26: a position that lies before statements that the known definition has
my ($file, $offset) = $source->binlog_position;
$source->sql(q{insert into shop.other values (5, 5, 50, 'five')}, 'alter table shop.other add d int not null default 3', q{insert into shop.other values (6, 6, 60, 'six', 6)}, 'alter table shop.other drop b', q{insert into shop.other values (7, 7, 'seven', 7)});
$postgres->psql(q{select cdc_remove_table('shop_in', 'shop.keyless')});
equal('before', 'other');
$postgres->poll(q{select count(*) from pg_stat_cdc_table where source_table = 'keyless'}, '0') or die 'the table does not leave';
$pipeline->stop;
$postgres->psql("select cdc_set_position('shop_in', '$file:$offset')");
$pipeline->start;
equal('D26: statements that come again', 'other');
$pipeline->is_verified('cdc_verify() finds the same', grep { $_ ne 'keyless' } @tables);
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
