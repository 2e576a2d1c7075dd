package CdcBridge::Reader;

# Another reader of a server's binary log, which shows itself with a server_id and, to MySQL, a uuid: speaks the protocol by itself.
#
#   my $reader = CdcBridge::Reader->new(source => $source, server_id => 77, uuid => '...');
#   $reader->is_alive;       # until the server ends it

use strict;
use warnings;

use IO::Select;
use IO::Socket::UNIX;

use constant { COM_QUERY => "\x03", COM_BINLOG_DUMP => "\x12" };
use constant CAPABILITIES => 1 | 0x200 | 0x8000 | 0x80000;    # long password, protocol 4.1, secure connection, plugins

# Comes by the socket as the administrator, who has no password.
sub new
{
	my ($class, %option) = @_;
	my $source = $option{source};
	my $socket = IO::Socket::UNIX->new(Peer => "$source->{dir}/s.sock") or die "reader: $!\n";
	my $self = bless { socket => $socket }, $class;
	$self->_read;
	$self->_write(1, pack('VVC', CAPABILITIES, 1 << 24, 45) . "\0" x 23 . "root\0" . "\0" . "mysql_native_password\0");
	my $answer = $self->_read;
	# another plugin: an empty password is one zero byte
	if (substr($answer, 0, 1) eq "\xfe") { $self->_write($self->{sequence} + 1, "\0"); $answer = $self->_read; }
	die 'reader: login refused: ' . substr($answer, 9) . "\n" unless substr($answer, 0, 1) eq "\0";
	my $uuid = $option{uuid} // '';
	$self->_command(COM_QUERY, 'set @master_binlog_checksum = @@global.binlog_checksum, @source_binlog_checksum = @@global.binlog_checksum, '
		  . "\@mariadb_slave_capability = 4" . ($uuid ne '' ? ", \@slave_uuid = '$uuid', \@replica_uuid = '$uuid'" : ''));
	$answer = $self->_read;
	die "reader: refused: $answer\n" unless substr($answer, 0, 1) eq "\0";
	my ($file, $offset) = $source->binlog_position;
	$self->_command(COM_BINLOG_DUMP, pack('VvV', $offset, 0, $option{server_id}) . $file);
	return $self;
}

sub _command { my ($self, $command, $text) = @_; return $self->_write(0, $command . $text); }

sub _write
{
	my ($self, $sequence, $payload) = @_;
	syswrite($self->{socket}, substr(pack('V', length($payload)), 0, 3) . chr($sequence) . $payload);
	return;
}

sub _read
{
	my ($self) = @_;
	my $head = $self->_bytes(4) // return "\xff";
	$self->{sequence} = ord(substr($head, 3, 1));
	return $self->_bytes(unpack('V', substr($head, 0, 3) . "\0")) // "\xff";
}

sub _bytes
{
	my ($self, $n) = @_;
	my $bytes = '';
	while (length($bytes) < $n)
	{
		sysread($self->{socket}, $bytes, $n - length($bytes), length($bytes)) or return;
	}
	return $bytes;
}

# Reads what has come; false when the server has ended it.
sub is_alive
{
	my ($self) = @_;
	my $select = IO::Select->new($self->{socket});
	while ($select->can_read(0))
	{
		return 0 if substr($self->_read, 0, 1) =~ /[\xff\xfe]/;
	}
	return 1;
}

1;
